#!/bin/sh
# Compiles the Java of a folder with the jars of its pom.xml, which must be those of its jars.lock: maven.sh FOLDER PLACE
# LEAST, the least version of the JDK. Nothing is done where it is there already. PLACE/java starts that JDK's java. The
# last line of a failure is the reason that the user sees.
set -eu
folder=$1 place=$2 least=$3
want=$(cat "$folder"/*.java "$folder/pom.xml" "$folder/jars.lock" "$0" | sha256sum)
if [ "$(cat "$place/complete" 2>/dev/null)" = "$want" ]; then exit 0; fi
newest=0
for release in /usr/lib/jvm/*/release "${JAVA_HOME:-/nowhere}/release"; do
    [ -f "$release" ] || continue
    version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$release")
    if [ "$version" -gt "$newest" ] && [ -x "$(dirname "$release")/bin/javac" ]; then
        newest=$version home=$(dirname "$release")
    fi
done
if [ "$newest" -lt "$least" ]; then
    echo "a JDK of version $least or newer not found: unpack one, such as Temurin 25, under /usr/lib/jvm" >&2
    exit 1
fi
rm -rf "$place"
mkdir -p "$place/jars"
cp "$folder/pom.xml" "$place"
(cd "$place" && JAVA_HOME=$home mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    "-DoutputDirectory=$place/jars") ||
    { echo "the jars of $folder/pom.xml cannot be had: let Maven reach its repository once" >&2; exit 1; }
(cd "$place/jars" && sha256sum --quiet -c "$folder/jars.lock") ||
    { echo "the jars of $folder/pom.xml are not those of its jars.lock" >&2; exit 1; }
"$home/bin/javac" -nowarn -d "$place/classes" -cp "$place/jars/*" "$folder"/*.java
ln -s "$home/bin/java" "$place/java"
printf '%s\n' "$want" >"$place/complete"
