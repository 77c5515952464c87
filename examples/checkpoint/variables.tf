variable "engine" {
  description = "What runs the training: `process`, this machine, which then needs scikit-learn itself, or `swarm`."
  type        = string
  default     = "process"
}

variable "hosts" {
  description = "For swarm: the hosts by their host names, such as { gpu1 = { address = \"ssh://ops@gpu1\", role = \"manager\" } }. They form a Swarm, or are one already."
  type        = map(object({ address = string, role = optional(string) }))
  default     = null
}

variable "driver" {
  description = "For swarm: the driver of the volume, such as for an export of NFS: { name = \"local\", options = { type = \"nfs\", o = \"addr=nas,rw\", device = \":/export/checkpoints\" } }. Without one, each host has a volume of its own."
  type        = object({ name = string, options = optional(map(string)) })
  default     = null
}

variable "folder" {
  description = "For process: the folder of the checkpoints."
  type        = string
  default     = "checkpoints"
}

variable "archive" {
  description = "For swarm: archive of an image with scikit-learn (docker save), for hosts that cannot reach a registry. Without one, the Dockerfile is built on one of the hosts."
  type        = string
  default     = null
}

variable "python" {
  description = "Python that has scikit-learn (pip install scikit-learn)."
  type        = string
  default     = "python3"
}

variable "epochs" {
  description = "Number of times that all images are learnt from, those before the checkpoint included."
  type        = number
  default     = 20
}
