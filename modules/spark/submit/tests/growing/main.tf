# A Spark cluster whose size is a variable. As on several hosts, its master's address is unknown while that changes.

terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

variable "workers" {
  type = number
}

resource "terraform_data" "spark" {
  input = { workers = var.workers, master = "spark://127.0.0.1:7077" }
}

module "train" {
  source = "../.."

  env = { TOKEN = sensitive("secret") }

  spark = {
    name     = "spark"
    cluster  = { name = "lab" }
    master   = terraform_data.spark.output.master
    executor = { workers = var.workers, cores = 1, memory_mib = 1024 }
    capacity = { workers = var.workers, cores = 1, memory_mib = 1024 }
  }
}

# Accepted only if it isn't sensitive.
output "workers" {
  value = module.train.workers
}
