# Elastic training with torchrun: ranks come and go while the training goes on, as processes of this machine.

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

  # Each member runs an agent, which starts a rank. The agents meet at worker 0, and go on with as many as there are.
  command = [
    var.python, "-m", "torch.distributed.run",
    "--nnodes=1:3", "--nproc_per_node=1", "--max_restarts=100",
    "--rdzv_backend=c10d", "--rdzv_endpoint={{ address \"worker\" 0 }}", "--rdzv_id={{ .Group }}",
    "--rdzv_conf=last_call_timeout=3", # seconds that agents wait for more of them
  ]
  args = [abspath("${path.module}/train.py"), "--folder", abspath(var.folder), "--epochs", tostring(var.epochs)]

  env = {
    OMP_NUM_THREADS = "1"

    # PyTorch 1.13 on Python 3.11, as in Debian 12, fails where these have their defaults. These say that what
    # local rank 1 writes, which there is none of, goes to a file.
    PET_REDIRECTS = "1:1"
    PET_TEE       = "1:1"
  }

  roles = {
    worker = {
      replicas = var.workers
      port     = var.port
      on_scale = "none" # the agents find out by themselves who is there
    }
  }

  restart_scope = "member" # a member that fails joins the others again
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
