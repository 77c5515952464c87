# Import a group: <cluster>/<group>.
terraform import trainyard_group.training lab/training

# If the cluster can't be found by its name alone, as on bare hosts, put the address of a host first.
terraform import trainyard_group.training ssh://ops@gpu1/lab/training
