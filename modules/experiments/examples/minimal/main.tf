# Two agents learn to set prices in a market, with four seeds each, as processes on this machine. The apply returns when
# all runs have ended.

terraform {
  required_version = ">= 1.9"

  required_providers {
    trainyard = {
      source  = "trainyard/trainyard"
      version = ">= 0.1.0"
    }
  }
}

variable "python" {
  description = "Python with NumPy."
  type        = string
  default     = "python3"
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "process"
}

module "pricing" {
  source = "../.."

  cluster = trainyard_cluster.lab
  name    = "pricing"
  python  = var.python

  runs = {
    q-learning = { environment = { agent = "q_learning", episodes = 200 }, learning = { epsilon_frames = 7000 } }
    dqn = {
      environment = { agent = "dqn", episodes = 100 }
      learning    = { learning_rate = 0.001, replay_start = 500, target_frames = 200, epsilon_frames = 3000, hidden_units = 64 }
    }
  }
  seeds = range(4)

  wait_for = "completed"
}

data "trainyard_sweep" "pricing" {
  cluster = trainyard_cluster.lab
  name    = module.pricing.name

  depends_on = [module.pricing]
}

output "rewards" {
  description = "Mean reward per episode with what each run has learnt, best first."
  value       = [for key in data.trainyard_sweep.pricing.ranking : "${key}  ${data.trainyard_sweep.pricing.runs[key].value}"]
}
