# Where the state is, what address and credentials it has is said by the environment: TF_HTTP_ADDRESS, TF_HTTP_PASSWORD, ….
# GitLab keeps states itself at such addresses. Others: s3 with use_lockfile, gcs, azurerm.
terraform {
  backend "http" {}
}
