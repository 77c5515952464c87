# Import a sweep: <cluster>/<sweep>.
terraform import trainyard_sweep.trials lab/trials

# If the cluster can't be found by its name alone, as on bare hosts, put the address of a host first.
terraform import trainyard_sweep.trials ssh://ops@gpu1/lab/trials
