# Import a cluster by its name.
terraform import trainyard_cluster.lab lab

# If the cluster can't be found by its name alone, as on bare hosts, put the address of a host first.
terraform import trainyard_cluster.lab ssh://ops@gpu1/lab
