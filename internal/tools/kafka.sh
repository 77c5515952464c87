#!/usr/bin/env bash
# Prints the folder with Kafka's jars: java -cp "$(kafka.sh)/*" kafka.Kafka server.properties. They are installed from
# Maven Central, once into the user's cache folder, as in kafka/pom.xml and with the digests in kafka/jars.sha256.
# Messages go to standard error.
#
# To update jars.sha256: cd FOLDER && LC_ALL=C sha256sum -- *.jar
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
source "$here/once.sh"

readonly copy=org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy-dependencies

install_jars() {
  again mvn --quiet --batch-mode --file "$here/kafka/pom.xml" "$copy" -DincludeScope=runtime -DoutputDirectory="$1"
  if ! (cd "$1" && LC_ALL=C sha256sum -- *.jar) | diff "$here/kafka/jars.sha256" -; then
    say "The jars are others than those that kafka/jars.sha256 lists."
    exit 1
  fi
}

once kafka "Maven Central" "$here/kafka/jars.sha256" install_jars
