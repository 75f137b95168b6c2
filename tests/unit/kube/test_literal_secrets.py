"""Which variables hold a secret, and which only sound like it."""

import pytest

from persia_infra.kube.literal_secrets import holds_secret


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PASSWORD", "hunter2"),
        ("DB_PASSWORD", "$hunter2"),
        ("DB_PASSWORD", "/hunter2"),
        ("DB_PASSWORD", "123456"),
        ("DB_PASSWORD_1", "hunter2"),
        ("DBPASSWORD", "hunter2"),
        ("PASSWORD1", "hunter2"),
        ("db.password", "hunter2"),
        ("dbPassword", "hunter2"),
        ("MYSQL_PWD", "hunter2"),
        ("DB_PASS", "hunter2"),
        ("SSH_PASSPHRASE", "hunter2"),
        ("APIKEY", "0a1b2c"),
        ("WANDB_API_KEY", "0a1b2c"),
        ("AWS_SECRET_ACCESS_KEY", "0a1b2c"),
        ("apiToken", "0a1b2c"),
        ("HF_TOKEN", "hf_0a1b2c"),
        ("CLIENT_SECRET", "0a1b2c"),
        ("CREDENTIALS", '{"type": "service_account"}'),
        ("PRIVATE_KEY", "0a1b2c"),
        ("TLS", "-----BEGIN RSA PRIVATE KEY-----\nMII"),
        ("DATABASE", "postgres://u:pw@db:5432/runs"),
        ("BROKERS", "amqp://a:$(PW)@one,amqp://a:pw@two"),
        ("PROXY", "http://:pw@proxy:3128"),
    ],
)
def test_a_secret(name: str, value: str) -> None:
    assert holds_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DB_PASSWORD", ""),
        ("DB_PASSWORD", "$(DB_PASSWORD_OF_SECRET)"),
        ("PASSWORD_FILE", "/run/secrets/password"),
        ("MASTER_KEY_PATH", "/keys/master"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/var/run/secrets/gcp.json"),
        ("SSL_PRIVATE_KEY", "/etc/tls/tls.key"),
        ("ALLOW_EMPTY_PASSWORD", "yes"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("TOKENIZER", "bert-base-uncased"),
        ("MAX_TOKENS", "512"),
        ("MAX_TOKEN", "512"),
        ("PAD_TOKEN", "<pad>"),
        ("FORWARD_PASS", "fused"),
        ("NUM_PASS", "3"),
        ("KEY_COUNT", "7"),
        ("PARTITION_KEY", "user_id"),
        ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
        ("SECRET_NAME", "hub-login"),
        ("BYPASS", "cache"),
        ("COMPASS", "north"),
        ("PWD", "/workspace"),
        ("NATS_URL", "nats://bus.training:4222"),
        ("DATABASE", "postgres://u:$(DB_PASSWORD)@db/runs"),
        ("DATABASE", "postgres://u@db/runs"),
        ("IMAGE", "registry.example:5000/team/image@sha256:0a1b"),
        ("ARGS", "--addr=http://a:80/x --to=b@c"),
        ("_", "x"),
        ("...", "x"),
    ],
)
def test_no_secret(name: str, value: str) -> None:
    assert not holds_secret(name, value)
