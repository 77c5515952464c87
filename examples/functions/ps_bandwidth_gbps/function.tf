terraform {
  required_providers {
    trainyard = {
      source = "trainyard/trainyard"
    }
  }
}

# 250 million parameters of 4 bytes, 10 workers, 2 parameter servers, one step per second.
output "gbps_per_server" {
  description = "Traffic at each parameter server in one direction, in Gbit/s: 40."
  value       = provider::trainyard::ps_bandwidth_gbps(250e6, 4, 10, 2, 1)
}
