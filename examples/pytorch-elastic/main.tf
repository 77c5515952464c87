# Elastic training with torchrun: ranks come and go during training, as processes on this machine.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name = "elastic-lab"
}

resource "trainyard_group" "digits" {
  cluster   = trainyard_cluster.lab
  name      = "digits"
  framework = "pytorch"

  # Each member runs an agent, which starts a rank. The rendezvous is at worker 0; training continues with however
  # many there are.
  command = [
    var.python, "-m", "torch.distributed.run",
    "--nnodes=1:3", "--nproc_per_node=1", "--max_restarts=100",
    "--rdzv_backend=c10d", "--rdzv_endpoint={{ address \"worker\" 0 }}", "--rdzv_id={{ .Group }}",
    "--rdzv_conf=last_call_timeout=3", # seconds to wait for more agents
  ]
  args = [abspath("${path.module}/train.py"), "--folder", abspath(var.folder), "--epochs", tostring(var.epochs)]

  env = {
    OMP_NUM_THREADS = "1"

    # PyTorch 1.13 on Python 3.11, as in Debian 12, fails with the defaults of these variables. These values redirect
    # the output of local rank 1, which does not exist, to a file.
    PET_REDIRECTS = "1:1"
    PET_TEE       = "1:1"
  }

  roles = {
    worker = {
      replicas = var.workers
      port     = var.port
      on_scale = "none" # the agents discover each other by themselves
    }
  }

  restart_scope = "member" # a failed member rejoins the others
  wait_for      = "completed"
}

data "trainyard_logs" "first" {
  cluster = trainyard_cluster.lab
  member  = "${trainyard_group.digits.name}-worker-0"

  depends_on = [trainyard_group.digits]
}

data "trainyard_group" "digits" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.digits.name

  depends_on = [trainyard_group.digits]
}
