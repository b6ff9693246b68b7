# The program in a small image: docker build -t toolcrib . && docker run --rm -v "$PWD:/work" toolcrib check -p .
# A container usually denies namespaces: see "Where it runs" in docs/install.md.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
WORKDIR /source
COPY . .
RUN cargo build --locked --profile dist --package toolcrib-cli --bin toolcrib
RUN cargo xtask package licenses

FROM debian:bookworm-slim
# For servers with TLS: the machine's certificate authorities are used.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /source/target/dist/toolcrib /usr/local/bin/toolcrib
COPY --from=build /source/LICENSE-APACHE /source/LICENSE-MIT \
    /source/target/package/texts/THIRD-PARTY.txt /usr/share/doc/toolcrib/
# A volume for `--state` begins with the owner that its folder has here.
RUN useradd --create-home toolcrib && install --directory --owner=toolcrib /state
USER toolcrib
WORKDIR /work
ENTRYPOINT ["toolcrib"]
