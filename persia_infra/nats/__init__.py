"""NATS clusters."""
