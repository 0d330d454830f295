# svc-router as an image: docs/install.md. The release workflow pins the digest of BASE.
ARG BASE=docker.io/library/node:26.10.0-trixie-slim

# The package is the same on every platform, so it is built on the one at hand.
FROM --platform=$BUILDPLATFORM ${BASE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN npm run package -- /package
RUN npm install --global --prefix /opt/svc-router --offline --ignore-scripts --no-audit --no-fund /package/*.tgz

FROM ${BASE}
COPY --from=build /opt/svc-router /opt/svc-router
# The program needs Node only.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
  && mkdir -m 700 /data && chown 1000:1000 /data
ENV PATH=/opt/svc-router/bin:$PATH
# The defaults ./data and ./svc-router.yaml are then /data and /svc-router.yaml, for every command.
WORKDIR /
VOLUME /data
USER 1000:1000
EXPOSE 8787 8788
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8787/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["svc-router"]
CMD ["start", "--host", "0.0.0.0", "--port", "8787", "--app-port", "8788"]
