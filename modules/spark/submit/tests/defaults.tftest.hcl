# What is submitted, and how, by engine.

mock_provider "trainyard" {
  mock_resource "trainyard_files" {
    defaults = { path = "/srv/files" }
  }
}

variables {
  spark         = { cluster = { name = "lab" }, master = "spark://127.0.0.1:7077" }
  secret_values = {} # an apply of a root module requires all of its ephemeral variables
}

run "defaults" {
  assert {
    condition     = trainyard_group.this.name == "train" && trainyard_group.this.wait_for == "completed" && trainyard_group.this.completion.when == "all" && trainyard_group.this.roles.driver.restart.condition == "never"
    error_message = "A driver runs once, and the apply waits until it has ended."
  }

  assert {
    condition = (
      slice(trainyard_group.this.command, 0, 7) == tolist(["spark-submit", "--name", "train", "--master", "spark://127.0.0.1:7077", "--deploy-mode", "client"])
      && reverse(trainyard_group.this.command)[0] == "/srv/files/classification.py" && trainyard_group.this.working_dir == "/srv/files"
    )
    error_message = "The module's own program must be submitted to the master."
  }

  assert {
    condition = alltrue([for setting in [
      "spark.cores.max=2", "spark.executor.cores=1", "spark.task.cpus=1", "spark.executor.memory=1024m", "spark.driver.memory=1024m", "spark.scheduler.minRegisteredResourcesRatio=1.0",
      "spark.scheduler.maxRegisteredResourcesWaitingTime=1800000ms", "spark.driver.host={{ hostname .Address }}", "spark.driver.port={{ .Port }}", "spark.port.maxRetries=256",
    ] : contains(trainyard_group.this.command, setting)])
    error_message = "The application must wait for two executors."
  }

  assert {
    condition     = trainyard_group.this.env.WORKERS == "2" && trainyard_group.this.env.PYSPARK_PYTHON == "python3" && trainyard_group.this.env.SPARK_LOCAL_IP == "{{ hostname .Address }}" && trainyard_group.this.container == null && trainyard_group.this.roles.driver.mounts == null
    error_message = "The program must get the number of workers."
  }
}

run "what_the_cluster_says" {
  variables {
    name = "fares"
    spark = {
      cluster  = { name = "lab" }
      master   = "spark://127.0.0.1:7077"
      conf     = { "spark.plugins" = "com.nvidia.spark.SQLPlugin", "spark.executor.cores" = "3" }
      executor = { workers = 4, applications = { fares = 3 }, cores = 2, memory_mib = 2048 }
      runtime  = { bin = "/opt/spark/bin/", env = { JAVA_HOME = "/opt/java", SPARK_LOCAL_IP = "0.0.0.0", WORKERS = "9" } }
    }
    conf         = { "spark.executor.cores" = "1", "spark.port.maxRetries" = "32" }
    gang_timeout = "1h30m0.5s"
    retries      = 2
    deadline     = "2h"
    triggers     = { commit = "abc" }
  }

  assert {
    condition     = output.workers == 3 && contains(trainyard_group.this.command, "spark.cores.max=6") && trainyard_group.this.env.JAVA_HOME == "/opt/java" && trainyard_group.this.env.SPARK_LOCAL_IP == "0.0.0.0" && trainyard_group.this.env.WORKERS == "3" && trainyard_group.this.command[0] == "/opt/spark/bin/spark-submit"
    error_message = "The cluster's own values must be used."
  }

  assert {
    condition     = contains(trainyard_group.this.command, "spark.plugins=com.nvidia.spark.SQLPlugin") && contains(trainyard_group.this.command, "spark.executor.cores=1") && contains(trainyard_group.this.command, "spark.task.cpus=1") && contains(trainyard_group.this.command, "spark.port.maxRetries=32") && contains(trainyard_group.this.command, "spark.scheduler.maxRegisteredResourcesWaitingTime=5400500ms")
    error_message = "The application's properties must override the cluster's."
  }

  assert {
    condition     = trainyard_group.this.roles.driver.restart.condition == "on_failure" && trainyard_group.this.roles.driver.restart.max_attempts == 2 && trainyard_group.this.completion.deadline == "2h" && trainyard_group.this.triggers.commit == "abc"
    error_message = "Retries, deadline and triggers must be as configured."
  }
}

run "swarm" {
  variables {
    spark = {
      cluster = { name = "lab", engine = "swarm" }
      master  = "spark://spark-master-0:7077"
      runtime = { image = "spark:4", mounts = [{ source = "/mnt/nas", target = "/srv/nas" }] }
    }
    program = "regression.py"
    driver  = { mounts = [{ type = "tmpfs", target = "/scratch" }, { type = "volume", source = "nas", target = "/data", driver = { name = "local", options = { type = "nfs" } } }] }
  }

  assert {
    condition = (
      length(trainyard_files.this) == 0 && trainyard_group.this.working_dir == null && { for name, config in trainyard_group.this.container.configs : config.target => config.content } == {
        "/srv/submit/regression.py" = file("train/regression.py")
        "/srv/submit/training.py"   = file("train/training.py")
        "/srv/submit/data.py"       = file("train/data.py")
      }
    )
    error_message = "The module's own program must come as configs."
  }

  assert {
    condition     = trainyard_group.this.roles.driver.mounts[*].target == tolist(["/srv/nas", "/scratch", "/data"]) && trainyard_group.this.roles.driver.mounts[2].driver.options.type == "nfs" && trainyard_group.this.image == "spark:4" && !contains(keys(trainyard_group.this.env), "SPARK_LOCAL_IP")
    error_message = "The driver must have the members' mounts, and its container's networks."
  }
}

run "masters_with_ipv6" {
  variables {
    spark = { cluster = { name = "lab", engine = "systemd" }, master = "spark://[fd00::4]:7077,[fd00::5]:7077" }
  }

  assert {
    condition     = contains(trainyard_group.this.command, "spark://[fd00::4]:7077,[fd00::5]:7077")
    error_message = "IPv6 addresses are as valid as others."
  }
}

run "jar_of_an_image" {
  variables {
    spark = {
      cluster = { name = "lab", engine = "swarm" }
      master  = "spark://spark-master-0:7077"
      runtime = { image = "spark:4" }
    }
    program = "/srv/train.jar"
    class   = "org.example.Train"
    args    = ["--rows", "10"]
  }

  assert {
    condition     = strcontains(join(" ", trainyard_group.this.command), "--class org.example.Train") && reverse(trainyard_group.this.command)[0] == "/srv/train.jar" && trainyard_group.this.args == tolist(["--rows", "10"]) && trainyard_group.this.container == null
    error_message = "The image's program must run as configured."
  }
}

run "containers_on_bare_hosts" {
  variables {
    spark = {
      cluster = { name = "lab", engine = "systemd", endpoint = "ssh://ops@gpu1" }
      master  = "spark://192.0.2.1:7077"
      runtime = { image = "spark:4" }
    }
    files   = "./train"
    program = "classification.py"
    driver  = { mounts = [{ source = "/mnt/nas", target = "/mnt/nas" }] }
  }

  assert {
    condition     = trainyard_files.this[0].source == "./train" && trainyard_group.this.roles.driver.mounts[1].source == "/srv/files" && trainyard_group.this.roles.driver.mounts[1].read_only
    error_message = "The driver's container must see the files."
  }
}
