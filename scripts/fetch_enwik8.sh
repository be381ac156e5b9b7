#!/usr/bin/env bash
# Fetches enwik8, the first 10^8 bytes of a dump of the English Wikipedia (M. Mahoney's Large Text Compression Benchmark), to data/enwik8.
# Goes on with a download that was broken off; checks size and digest; does nothing where the file is right already.
#
#     scripts/fetch_enwik8.sh [FOLDER]
set -euo pipefail
url=${ENWIK8_URL:-https://mattmahoney.net/dc/enwik8.zip}
folder=${1:-data}
file=$folder/enwik8
size=100000000
sha1=57b8363b814821dc9d47aa4d41f58733519076b2

die() { echo "fetch_enwik8.sh: $*" >&2; exit 1; }
right() { [ "$(wc -c <"$1")" -eq $size ] && [ "$(sha1sum <"$1")" = "$sha1  -" ]; }

for tool in curl unzip sha1sum; do
  command -v $tool >/dev/null || die "needs $tool"
done
if [ -e "$file" ]; then
  right "$file" || die "$file is there, but is not enwik8: its size or digest differs; move it away first"
  echo "$file is there and right"
  exit 0
fi
mkdir -p "$folder"
curl --fail --location --retry 3 --continue-at - --output "$file.zip.part" "$url" ||
  die "the download of $url broke off; give the same command again to go on"
unzip -p "$file.zip.part" enwik8 >"$file.part" || {
  rm -f "$file.part" "$file.zip.part"
  die "what $url gave is not a whole archive; it was removed, give the same command again"
}
right "$file.part" || {
  rm -f "$file.part" "$file.zip.part"
  die "what $url gave is not enwik8: its size or digest differs; it was removed"
}
mv "$file.part" "$file"
rm -f "$file.zip.part"
echo "$file: $size bytes, SHA-1 $sha1"
