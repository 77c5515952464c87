# A cluster is imported by its name.
terraform import trainyard_cluster.lab lab

# Of a cluster that can't be found by its name alone, as on bare hosts, the address of a host comes first.
terraform import trainyard_cluster.lab ssh://ops@gpu1/lab
