variable "engine" {
  description = "Engine of the cluster: `process` (this machine, which then needs scikit-learn) or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: hosts by host name, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are already one."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "driver" {
  description = "For swarm: driver of the volume, for example for an NFS export: { name = \"local\", options = { type = \"nfs\", o = \"addr=nas,rw\", device = \":/export/checkpoints\" } }. If omitted, each host has a separate volume."
  type        = object({ name = string, options = optional(map(string)) })
  default     = null
}

variable "folder" {
  description = "For process: folder for checkpoints."
  type        = string
  default     = "checkpoints"
}

variable "archive" {
  description = "For swarm: archive of an image with scikit-learn (docker save), for hosts that cannot reach a registry. If omitted, one of the hosts builds the Dockerfile."
  type        = string
  default     = null
}

variable "python" {
  description = "Python interpreter with scikit-learn (pip install scikit-learn)."
  type        = string
  default     = "python3"
}

variable "epochs" {
  description = "Number of epochs, including those before the checkpoint."
  type        = number
  default     = 20
}
