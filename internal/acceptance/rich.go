//go:build linux

package acceptance

// Rich is a group that sets every attribute.
const Rich = `
  framework = "tensorflow_v1"
  command   = [local.member]
  args      = ["print:{{ .Name }}", "wait"]
  env       = { RATE = "0.1" }
  mounts    = [{ source = "/tmp", target = "/tmp" }]
  roles = {
    ps = { replicas = 1, port = local.port, working_dir = "/" }
    worker = {
      replicas     = 2
      port         = local.port + 10
      env          = { SIZE = "3" }
      resources    = { cpus = 0.1, memory_mib = 64 }
      placement    = { strategy = "pack" }
      restart      = { condition = "on_failure", max_attempts = 3, delay = "2s" }
      exit_codes   = { final = ["1-3", "42"] }
      grace_period = "3s"
    }
  }
  completion    = { when = "all", roles = ["worker"], deadline = "10h0m0s", stop_rest = false }
  restart_scope = "group"
  triggers      = { run = "1" }`
