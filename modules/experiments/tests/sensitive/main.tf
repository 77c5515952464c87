# Runs that are sensitive as a whole.

terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

module "experiments" {
  source = "../.."

  cluster = { name = "lab" }
  runs    = sensitive({ first = {}, second = { environment = { agent = "dqn" } } })
}

# Terraform accepts this only if it isn't sensitive.
output "members" {
  value = module.experiments.members
}
