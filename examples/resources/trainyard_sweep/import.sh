# A sweep is imported by the names of its cluster and its own.
terraform import trainyard_sweep.trials lab/trials
