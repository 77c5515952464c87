# A trainer with unknown resource needs: the policy leaves the count alone, and recommends what its members should
# request.
resource "trainyard_group" "finetune" {
  cluster   = trainyard_cluster.lab
  name      = "finetune"
  framework = "none"
  image     = "trainer:1.2"

  roles = {
    trainer = { resources = { cpus = 1, memory_mib = 1024 }, command = ["python", "train.py"] } # no replicas
  }
}

resource "trainyard_autoscaling_policy" "finetune" {
  cluster = trainyard_cluster.lab
  group   = trainyard_group.finetune.name
  role    = "trainer"
  min     = 1
  max     = 1

  vertical = {
    cpus       = { min = 0.5, max = 8 }
    memory_mib = { min = 512, max = 16384 }
  }
}

# The latest recommendation, shown after an apply.
data "trainyard_scaling_history" "finetune" {
  cluster = trainyard_cluster.lab
  group   = trainyard_autoscaling_policy.finetune.group
  role    = trainyard_autoscaling_policy.finetune.role
  limit   = 1
}

output "recommended" {
  value = { for v in flatten(data.trainyard_scaling_history.finetune.entries[*].vertical) : v.name => v.target }
}
