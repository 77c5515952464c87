# A sweep is imported by the names of its cluster and its own.
terraform import trainyard_sweep.trials lab/trials

# Of a cluster that can't be found by its name alone, as on bare hosts, the address of a host comes first.
terraform import trainyard_sweep.trials ssh://ops@gpu1/lab/trials
