terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

resource "trainyard_cluster" "lab" {
  name = "lab"
}

# Parameter servers and workers find each other via TF_CONFIG. The group completes when worker 0, its chief, exits
# with code 0; the others are then stopped.
resource "trainyard_group" "training" {
  cluster   = trainyard_cluster.lab
  name      = "training"
  framework = "tensorflow"

  command = ["/bin/sh", "-c", "echo \"$TF_CONFIG\"; exec sleep 60"]
  env     = { LEARNING_RATE = "0.001" }

  roles = {
    ps = { replicas = 2, port = 8000 }

    worker = {
      replicas     = 4
      port         = 9000
      resources    = { cpus = 0.1, memory_mib = 64 }
      placement    = { strategy = "spread" }
      restart      = { condition = "on_failure", max_attempts = 3, delay = "5s" }
      exit_codes   = { final = ["2", "126-127"] } # 2: the arguments are wrong
      grace_period = "30s"
    }
  }

  completion = { when = "chief", deadline = "12h" }

  # A new value restarts all members, even if the group has completed.
  triggers = { run = "1" }

  timeouts = { create = "10m" }
}

# A service with custom roles. Templates give members each other's addresses, and free ports are chosen.
resource "trainyard_group" "service" {
  cluster = trainyard_cluster.lab
  name    = "service"

  roles = {
    broker = {
      command = ["/bin/sleep", "infinity"]
    }

    client = {
      replicas = 2
      command  = ["/bin/sh", "-c", "echo \"member $NAME uses $BROKER\"; exec sleep infinity"]
      env = {
        NAME   = "{{ .Name }}"
        BROKER = "{{ address \"broker\" 0 }}"
      }
    }
  }

  completion = { when = "never" }
}

output "brokers" {
  description = "Addresses of the brokers, separated by commas."
  value       = trainyard_group.service.cluster_spec["broker"]
}
