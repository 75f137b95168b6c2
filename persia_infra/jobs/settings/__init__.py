"""Run settings, volumes and profiles, the same for every kind of job."""
