terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

locals {
  cluster = {
    ps     = ["10.0.0.1:8000"]
    worker = ["10.0.0.2:9000", "10.0.0.3:9000"]
  }
}

output "tf_config" {
  description = "TF_CONFIG of the second worker."
  value       = provider::trainyard::tf_config(local.cluster, "worker", 1)
}
