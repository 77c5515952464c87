resource "trainyard_autoscaling_policy" "it" {
  cluster  = trainyard_cluster.lab
  group    = trainyard_group.job.name
  role     = "worker"
  min      = 1
  max      = 8
  initial  = 1
  interval = "15s"
  metrics = {
    cpu = {
      source      = { agent = { measure = "cpu_percent", of = "member" } }
      window      = "1m0s"
      aggregation = "p95"
      algorithm   = { target = { value = 60, per = "mean" } }
      stale_after = "2m0s"
      forecast    = { season = "24h0m0s" }
    }
    requests = {
      source        = { prometheus = { url = "http://127.0.0.1:1", query = "sum(rate(http_requests_total[1m]))" } }
      algorithm     = { heat = { lower = 20, upper = 80, target = 50, recurrence = 2 } }
      on_missing    = "value"
      missing_value = 40
    }
    waiting = {
      source    = { queue = { http = { url = "http://127.0.0.1:1/queue", path = "length" } } }
      algorithm = { threshold = { upper = 100, step_out_percent = 50 } }
    }
    jobs = {
      source    = { queue = { redis = { address = "127.0.0.1:1", key = "jobs", database = 2 } } }
      algorithm = { queue = { per_member = 10, cool_down = "1m0s" } }
    }
    files = {
      source    = { queue = { command = ["false"] } }
      algorithm = { queue = { per_member = 10 } }
    }
    steps = {
      source    = { progress = { pattern = "step (?P<step>\\d+)", combine = "max" } }
      algorithm = { marginal_gain = { threshold = 0.1, settle = "2m0s", retry_after = "1h0m0s" } }
    }
    servers = { algorithm = { ratio = { role = "ps", per = 4 } } }
    learnt  = { algorithm = { external = { command = ["false"], timeout = "1s" } } }
  }
  schedules = { day = { start = "0 8 * * MON-FRI", end = "0 18 * * *", time_zone = "Europe/Warsaw", count = 4 } }
  scale_out = { tolerance = 0, rates = [{ count = 2, period = "15s" }, { percent = 100, period = "1m0s" }], select = "min", max_step = 3 }
  scale_in  = { stabilisation_window = "5m0s", cooldown = "1m0s" }
  guards = {
    busy                 = { prometheus = { url = "http://127.0.0.1:1", query = "busy" }, cpu_percent = 5 }
    remove               = "highest_index"
    drain                = { command = ["false"], timeout = "5s" }
    member_hours_per_day = 48
  }
  dry_run    = true
  paused     = "all"
  on_destroy = "restore"
}
