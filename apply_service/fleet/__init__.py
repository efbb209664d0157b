"""Many replicas: `affinity` names the file of a request to whatever chooses its replica."""
