# MPI ranks, one in each worker, learn to read handwritten digits, without SSH: as processes on this machine, or, with
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

# Containers get MPI from an image, which all hosts have before the group starts.
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
    # By default mpiexec starts a proxy on each host, over SSH. As a manual launcher it waits on this port for the
    # workers, which are proxies 0, 1 and so on, and starts a rank in each.
    launcher = {
      port    = var.port
      command = [var.mpiexec, "-launcher", "manual", "-hosts", join(",", local.workers), "-ppn", "1", "-n", tostring(var.workers)]
      # -m mpi4py ends all ranks when one of them raises an exception, instead of letting the others wait for it.
      args = [var.python, "-m", "mpi4py", local.program, "--epochs", tostring(var.epochs)]
      env  = { MPIEXEC_PORT_RANGE = "{{ .Port }}:{{ .Port }}" }
    }
    # A proxy that finds no launcher ends at once, with code 5. The arguments are those that a manual launcher prints
    # for starting its proxies.
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
        # Ranks on one host are in separate containers, and eth0 is the interface that leads to the other members.
        local.swarm ? { UCX_TLS = "tcp,self", UCX_NET_DEVICES = "eth0" } : {},
      )
    }
  }

  # Containers get the program from Terraform: a change restarts the ranks, without a new image.
  container = local.swarm ? {
    init         = true # so that workers end on SIGTERM
    shm_size_mib = 256
    configs = {
      program = { content = file("${path.module}/train.py"), target = local.program }
    }
  } : null

  # No rank can join a running training: a failure restarts all of them.
  restart_scope = "group"

  # When the launcher ends, the group has completed.
  wait_for = "completed"
}

# The ranks' output is in the launcher's log.
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
