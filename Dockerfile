# The gate as an image: docker build -t robotsgate . && docker run -p 127.0.0.1:9309:9309 robotsgate
#
# Every client that can reach the port may use the gate. Publish the port to this machine
# only, as above, or let only containers on the same network connect.

FROM golang:1.26 AS build
WORKDIR /src
# A separate layer for the modules, which change less often than the code.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /robotsgate .

FROM alpine:3
# The public root CAs verify origins, and are part of the bundle for clients.
RUN apk add --no-cache ca-certificates
# Numeric ids, since some orchestrators cannot see from a name that the user is not root.
# A volume takes the owner of its directory: /data is for the gate, /trust for the
# certificates that deploy/compose.yaml gives to clients.
RUN addgroup -S -g 10001 robotsgate \
 && adduser -S -D -H -u 10001 -G robotsgate -h /data robotsgate \
 && install -d -o 10001 -g 10001 -m 0755 /trust \
 && install -d -o 10001 -g 10001 -m 0700 /data
# Mount another configuration at the same path.
COPY deploy/image/config.yaml /etc/robotsgate/config.yaml
COPY --from=build /robotsgate /usr/local/bin/robotsgate
LABEL org.opencontainers.image.title=robotsgate
LABEL org.opencontainers.image.description="a forward HTTP proxy that enforces robots.txt (RFC 9309)"
LABEL org.opencontainers.image.licenses=Apache-2.0
USER 10001:10001
# The CA and the snapshots: without the volume clients must trust a new CA, and evidence is lost.
VOLUME /data
# The proxy and the admin listener. By default only the container itself can connect to the
# admin listener: admin.listen changes that.
EXPOSE 9309 9310
# -Y off: without a proxy of the environment.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["wget", "-q", "-Y", "off", "-O", "/dev/null", "http://127.0.0.1:9310/healthz"]
ENTRYPOINT ["/usr/local/bin/robotsgate"]
CMD ["serve", "-c", "/etc/robotsgate/config.yaml"]
