# Import an autoscaling policy: <cluster>/<group>/<role>.
terraform import trainyard_autoscaling_policy.spark lab/spark/worker

# If the cluster can't be found by its name alone, as on bare hosts, put the address of a host first.
terraform import trainyard_autoscaling_policy.spark ssh://ops@gpu1/lab/spark/worker
