# Import a GPU pool: <cluster>/<pool>.
terraform import trainyard_gpu_pool.left lab/left

# If the cluster can't be found by its name alone, as on bare hosts, put the address of a host first.
terraform import trainyard_gpu_pool.left ssh://ops@gpu1/lab/left
