#!/usr/bin/env bash
# Formats the Terraform code of examples/ and modules/, and generates docs/ from the provider's schema, templates/ and
# examples/, and the pictures of backtests. With `check`, fails if that changed anything. Works offline, with Terraform
# and OpenTofu.
#
# The docs must not depend on the CLI that reads the schema. Terraform before 1.12 omits resource identities, so import
# by identity is shown by a template and an example with another name than tfplugindocs' own import-by-identity.tf.
set -euo pipefail

cd "$(dirname "$0")/../.."
tf=$(internal/tools/terraform.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

quietly() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
}

generated=()
for folder in docs examples modules; do
  [[ -d $folder ]] && generated+=("$folder")
done

# What the commands in the examples' READMEs make there.
left_out=(venv checkpoints .terraform)

# tfplugindocs reads a schema from a file only under the address registry.terraform.io/hashicorp/<name>, so the provider
# is served under that address, from a filesystem mirror that contains nothing else.
write_schema() {
  local platform
  platform=$(go env GOOS)_$(go env GOARCH)
  go build -buildvcs=false \
    -o "$work/mirror/registry.terraform.io/hashicorp/trainyard/0.0.1/$platform/terraform-provider-trainyard" .
  cat >"$work/main.tf" <<-'HCL'
	terraform {
	  required_providers {
	    trainyard = { source = "registry.terraform.io/hashicorp/trainyard" }
	  }
	}
	HCL
  cat >"$work/cli.tfrc" <<-HCL
	provider_installation {
	  filesystem_mirror { path = "$work/mirror" }
	}
	HCL
  export TF_CLI_CONFIG_FILE="$work/cli.tfrc" CHECKPOINT_DISABLE=1
  quietly "$tf" -chdir="$work" init -input=false -no-color
  "$tf" -chdir="$work" providers schema -json >"$work/schema.json"
}

if [[ ${1:-} == check ]]; then
  mkdir "$work/before"
  tar -cf - "${left_out[@]/#/--exclude=}" "${generated[@]}" | tar -xf - -C "$work/before"
fi

write_schema
for folder in examples modules; do
  [[ -d $folder ]] && "$tf" fmt -recursive "$folder"
done
quietly go tool -modfile=internal/tools/go.mod tfplugindocs generate \
  --provider-name trainyard --rendered-provider-name Trainyard --providers-schema "$work/schema.json"
quietly go run ./internal/bench -pictures docs/guides/autoscaling

if [[ ${1:-} == check ]]; then
  for folder in docs examples modules; do
    if [[ -d $folder ]] && ! diff -ruN "${left_out[@]/#/--exclude=}" "$work/before/$folder" "$folder"; then
      echo "make generate changed $folder/ as shown above: commit the result." >&2
      exit 1
    fi
  done
fi
