# The service in one image, for SQLite and PostgreSQL. Settings come from the environment: docs/configuration.md.
#
#   docker build -t gatehouse .
#   docker run -p 3000:3000 -v gatehouse-data:/app/data -e ADMIN_KEY="$ADMIN_KEY" gatehouse
#
# For builds that repeat exactly, name the base image by its digest: --build-arg NODE_IMAGE=node:24-slim@sha256:…
# For npm packages from a registry of yours: --secret id=npmrc,src="$HOME/.npmrc". The image keeps neither its name nor its keys.
ARG NODE_IMAGE=node:24-slim

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# Not --omit=optional: the binaries of @node-rs/argon2 (needed for every sign-in) and of @napi-rs/nice (lowers the priority of
# hashing threads) are optional packages, one of each for this platform. Then it removes what the service does not use: the Node
# of package.json, npm's notes (with the name of the registry), SQLite's sources, its binaries for other platforms, types and source
# maps of packages.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc \
    npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
 && rm -rf node_modules/node-linux-* node_modules/.bin/node node_modules/.package-lock.json \
      node_modules/better-sqlite3/deps node_modules/better-sqlite3/src \
 && find node_modules/better-sqlite3/prebuilds -type f ! -name "linux-$(node -p process.arch).node" -delete \
 && find node_modules -type f \( -name '*.map' -o -name '*.ts' \) -delete

FROM ${NODE_IMAGE}
# No DATABASE_URL here: it would conflict with DATABASE_URL_FILE. The default is data/gatehouse.db below /app.
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY src ./src
COPY plugins ./plugins
COPY routes ./routes
RUN mkdir -p data node_modules/.cache/node && chown node:node data node_modules/.cache node_modules/.cache/node
USER node

# The build starts the service once and creates one account. A missing package fails the build, and the code that Node compiled
# stays in the image (src/preload.js), so that the file system can be read-only. Node keeps compiled code by its version, the
# processor's features and the user's id. Where one of them differs, it compiles again.
# PORT matters to builds that share the network of the host.
ARG PORT=3000
RUN set -e; \
    export DATABASE_URL=sqlite:/tmp/start/gatehouse.db HOST=127.0.0.1 LOG_LEVEL=warn DRAIN_DELAY=0s; \
    node --import ./src/preload.js src/server.ts & server=$!; \
    node -e "const url = 'http://127.0.0.1:$PORT'; \
      const body = JSON.stringify({ email: 'first@start.example', password: 'four hens crossed the moat' }); \
      const headers = { 'content-type': 'application/json' }; \
      const signUp = () => fetch(url + '/account/sign-up', { method: 'POST', headers, body }); \
      const ready = left => fetch(url + '/ready').catch(error => { \
        if (left === 0) throw error; \
        return new Promise(resolve => setTimeout(resolve, 100)).then(() => ready(left - 1)); \
      }); \
      ready(300).then(signUp).then(({ status }) => process.exit(status === 201 ? 0 : 1))"; \
    kill -TERM $server; wait $server; rm -rf /tmp/start

VOLUME /app/data
EXPOSE 3000
HEALTHCHECK --interval=30s --timeout=3s --start-period=60s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# The same as `npm start`, without a shell: Node is process 1 and receives SIGTERM.
CMD ["node", "--import", "./src/preload.js", "src/server.ts"]
