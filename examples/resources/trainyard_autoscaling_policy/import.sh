# An autoscaling policy is imported by the names of its cluster, its group and its role.
terraform import trainyard_autoscaling_policy.spark lab/spark/worker

# Of a cluster that can't be found by its name alone, as on bare hosts, the address of a host comes first.
terraform import trainyard_autoscaling_policy.spark ssh://ops@gpu1/lab/spark/worker
