# A cluster is imported by its name.
terraform import trainyard_cluster.lab lab
