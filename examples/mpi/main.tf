# Ranks of MPI learn to read handwritten digits, one in each worker, without SSH: as processes of this machine, or, with
# engine = "swarm", as containers on several hosts.

terraform {
  required_version = ">= 1.8"

  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

locals {
  swarm   = var.engine == "swarm"
  program = local.swarm ? "/srv/train.py" : abspath("${path.module}/train.py")
  workers = [for i in range(var.workers) : "digits-worker-${i}"]
}

resource "trainyard_cluster" "lab" {
  name   = "mpi-lab"
  engine = var.engine
  hosts  = var.hosts
}

# Containers have MPI from an image, which all hosts have before the group starts.
resource "trainyard_image" "mpi" {
  count = local.swarm ? 1 : 0

  cluster = trainyard_cluster.lab
  name    = "mpich:5"
  archive = var.archive
  build   = var.archive == null ? { context = path.module } : null
}

resource "trainyard_group" "digits" {
  cluster   = trainyard_cluster.lab
  name      = "digits"
  framework = "mpi"
  image     = one(trainyard_image.mpi[*].image_id)

  roles = {
    # mpiexec would start a proxy on each host, over SSH. As a manual launcher it waits at this port for those that the
    # workers are: proxy 0 and 1, by which it starts a rank in each.
    launcher = {
      port    = var.port
      command = [var.mpiexec, "-launcher", "manual", "-hosts", join(",", local.workers), "-ppn", "1", "-n", tostring(var.workers)]
      args    = [var.python, local.program, "--epochs", tostring(var.epochs)]
      env     = { MPIEXEC_PORT_RANGE = "{{ .Port }}:{{ .Port }}" }
    }
    # A proxy that finds nobody there ends at once, with code 5. It takes its arguments from what a manual launcher says
    # that proxies are to be started with.
    worker = {
      replicas = var.workers
      command  = ["sh", "-c", "while \"$@\"; code=$?; [ $code = 5 ]; do sleep 1; done; exit $code", "wait", var.proxy]
      args = [
        "--control-port", "{{ address \"launcher\" 0 }}", "--proxy-id", "{{ .Index }}", "--rmk", "user",
        "--launcher", "manual", "--demux", "poll", "--pgid", "0", "--retries", "0", "--usize", "-1",
        "--pmi-port", "0", "--gpus-per-proc", "-2", "--gpu-subdevs-per-proc", "-2",
      ]
      env = merge(
        { OMP_NUM_THREADS = "1", WORKER = "{{ .Name }}" },
        # Ranks of one host are in containers apart, and eth0 is the interface that leads to the other members.
        local.swarm ? { UCX_TLS = "tcp,self", UCX_NET_DEVICES = "eth0" } : {},
      )
    }
  }

  # They have the program from Terraform: a change to it starts the ranks anew, without another image.
  container = local.swarm ? {
    init         = true # so that workers end when they are told to
    shm_size_mib = 256
    configs = {
      program = { content = file("${path.module}/train.py"), target = local.program }
    }
  } : null

  # No rank can join those that run: one that fails takes all others back to the start.
  restart_scope = "group"

  # The launcher's end is that of the group.
  wait_for = "completed"
}

# What ranks write is in the log of the launcher.
data "trainyard_logs" "launcher" {
  cluster = trainyard_cluster.lab
  member  = "${trainyard_group.digits.name}-launcher-0"

  depends_on = [trainyard_group.digits]
}

data "trainyard_group" "digits" {
  cluster = trainyard_cluster.lab
  name    = trainyard_group.digits.name

  depends_on = [trainyard_group.digits]
}
