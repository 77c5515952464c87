# Two uses of GPUs side by side: training has exclusive use of two of eight cards, and the 50 runs of a sweep share an
# A40.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "image" {
  description = "Image of the trainer, which the hosts have or can pull without credentials."
  type        = string
  default     = "registry.example.com/trainer:1.2"
}

# On each host, NVIDIA's container runtime is the default.
resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "swarm"

  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", role = "manager" } # eight V100
    gpu2 = { address = "ssh://ops@gpu2" }                   # one A40
  }
}

# The other six are in use by others: Trainyard uses only these two. nvidia-smi -L lists them.
resource "trainyard_gpu_pool" "training" {
  cluster = trainyard_cluster.lab
  name    = "training"

  devices = {
    gpu1 = ["GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91", "GPU-b5a3c1d2-77e0-4d0c-8a55-90f1c2b3d4e5"]
  }
}

resource "trainyard_group" "training" {
  cluster   = trainyard_cluster.lab
  name      = "training"
  framework = "pytorch"

  image   = var.image
  command = ["python3", "/srv/train.py"]

  roles = {
    worker = {
      replicas = 2
      port     = 29500
      gpus     = { pool = trainyard_gpu_pool.training.name }
    }
  }
}

# 46,068 MiB, less 3 % for the driver, make 37 slots of 1,199 MiB. The program has to stay within its share, which is in
# TRAINYARD_GPU_MEMORY_MIB if its role or sweep requests memory_mib.
resource "trainyard_gpu_pool" "sweep" {
  cluster = trainyard_cluster.lab
  name    = "sweep"
  select  = { model = "NVIDIA A40" }

  sharing             = "slots"
  memory_mib_per_slot = 1199
  reserve_percent     = 3

  # Others may use the card as well: the memory that they take is not free, and runs wait for free memory.
  on_foreign_process = "ignore"
}

# Each run starts once the driver reports 1,199 MiB plus the reserve as free, and at least 20 seconds after the previous
# one. A failed run stops no other; one that runs out of GPU memory is queued again.
resource "trainyard_sweep" "shards" {
  cluster = trainyard_cluster.lab
  name    = "shards"

  image   = var.image
  command = ["python3", "/srv/evaluate.py", "--shard", "{{ .Env.SHARD }}"]
  runs    = { for shard in range(50) : "shard-${shard}" => { SHARD = shard } }

  # There is room for 37, but they also share the card's time: measure how many give the highest throughput.
  max_parallel = 8

  gpus      = { pool = trainyard_gpu_pool.sweep.name, memory_mib = 1199 }
  admission = { free_gpu_memory = true, settle = "20s" }
}

output "placements" {
  description = "Host and GPUs of each training member. Those of runs change over time: see the data source trainyard_sweep."
  value       = trainyard_group.training.placements
}

output "slots" {
  description = "Number of members or runs that each GPU has room for."
  value       = merge(trainyard_gpu_pool.training.device_slots, trainyard_gpu_pool.sweep.device_slots)
}
