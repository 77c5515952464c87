# An autoscaling policy is imported by the names of its cluster, its group and its role.
terraform import trainyard_autoscaling_policy.spark lab/spark/worker
