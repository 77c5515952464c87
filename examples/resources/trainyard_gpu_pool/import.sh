# A GPU pool is imported by the names of its cluster and its own.
terraform import trainyard_gpu_pool.left lab/left
