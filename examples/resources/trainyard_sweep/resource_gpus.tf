resource "trainyard_cluster" "gpus" {
  name   = "gpus"
  engine = "swarm"

  hosts = {
    gpu1 = { address = "ssh://ops@gpu1", role = "manager" }
  }
}

resource "trainyard_gpu_pool" "a40" {
  cluster             = trainyard_cluster.gpus
  name                = "a40"
  select              = { model = "NVIDIA A40" }
  sharing             = "slots"
  memory_mib_per_slot = 1199
}

# 50 experiments on one shared GPU. Each starts once its memory is free there, whatever else uses the GPU; one that
# still runs out of memory is queued again.
resource "trainyard_sweep" "seeds" {
  cluster = trainyard_cluster.gpus
  name    = "seeds"
  image   = "registry.example.com/trainer:1.2"
  command = ["python3", "train.py", "--seed", "{{ .Env.SEED }}"]
  runs    = { for seed in range(50) : "seed-${seed}" => { SEED = seed } }

  max_parallel = 8
  resources    = { cpus = 1, memory_mib = 2300 }
  gpus         = { pool = trainyard_gpu_pool.a40.name, memory_mib = 1199 }
  admission    = { free_gpu_memory = true, settle = "20s" }
  retry        = { max_attempts = 3, out_of_memory = 5 }
  objective    = { pattern = "reward=([-0-9.]+)" }
}
