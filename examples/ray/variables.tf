variable "engine" {
  description = "Engine of the cluster: `process` (this machine, which then needs Ray) or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: hosts by host name, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are already one."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "archive" {
  description = "For swarm: archive of an image with Ray (docker save), for hosts that cannot reach a registry. If omitted, one of the hosts builds the Dockerfile."
  type        = string
  default     = null
}

variable "ray" {
  description = "For process: path of the program ray (pip install ray)."
  type        = string
  default     = "ray"
}

variable "python" {
  description = "Python interpreter with Ray and scikit-learn (pip install ray scikit-learn)."
  type        = string
  default     = "python3"
}

variable "temp_dir" {
  description = "For process: folder for Ray's logs and sockets, with a subfolder for each member. Keep its path short: socket paths are limited to 107 bytes."
  type        = string
  default     = "/tmp/ray"
}

variable "port" {
  description = "Port of the head."
  type        = number
  default     = 6379
}

variable "workers" {
  description = "Number of workers, each of which runs one trial at a time. A change restarts no other member."
  type        = number
  default     = 2
}

variable "trials" {
  description = "Number of settings to try."
  type        = number
  default     = 16
}
