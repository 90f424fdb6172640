# The gate as an image: docker build -t robotsgate . && docker run -p 127.0.0.1:9309:9309 robotsgate
#
# Anybody who reaches its port may use it. Publish it to this machine only, as
# above, or not at all and let containers on the same network reach it.

FROM golang:1.26 AS build
WORKDIR /src
# The modules change less often than the code: a layer of their own.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /robotsgate .

FROM alpine:3
# The roots of the public CAs: origins are verified by them, and they are part
# of the bundle for clients.
RUN apk add --no-cache ca-certificates
# Numbers, since some orchestrators can't tell from a name that it isn't root.
# A volume takes over its owner from the folder: /data is the gate's, /trust is for
# what deploy/compose.yaml hands to clients.
RUN addgroup -S -g 10001 robotsgate \
 && adduser -S -D -H -u 10001 -G robotsgate -h /data robotsgate \
 && install -d -o 10001 -g 10001 -m 0700 /data \
 && install -d -o 10001 -g 10001 -m 0755 /trust \
 && install -d /etc/robotsgate \
 && printf 'listen: 0.0.0.0:9309\ndata_dir: /data\n' > /etc/robotsgate/config.yaml
COPY --from=build /robotsgate /usr/local/bin/robotsgate
USER 10001:10001
# The CA and the snapshots. Clients' trust and the evidence are lost without it.
VOLUME /data
# The proxy, and the admin listener, which only the container itself reaches
# unless a configuration sets admin.listen.
EXPOSE 9309 9310
# -Y off: not through a proxy that the environment may name.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["wget", "-q", "-Y", "off", "-O", "/dev/null", "http://127.0.0.1:9310/healthz"]
# Another configuration goes to the same path.
ENTRYPOINT ["/usr/local/bin/robotsgate"]
CMD ["serve", "-c", "/etc/robotsgate/config.yaml"]
