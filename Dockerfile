# The service in one image, for either engine: settings come from the environment (README.md, Configuration).
#
#   docker build -t gatehouse .
#   docker run -p 3000:3000 -v gatehouse-data:/app/data -e ADMIN_KEY=… gatehouse
#
# Where builds have to repeat exactly, name the base image by its digest.
FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# Not --omit=optional: the binaries of @node-rs/argon2 (no sign-in without) and of @napi-rs/nice (hashing threads would not
# give way to requests) are optional packages, one of each for this platform. What this platform has no use for goes in the
# same layer: the Node of package.json, for machines that have none; SQLite's sources and its binaries for other platforms.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
 && rm -rf node_modules/node-linux-* node_modules/.bin/node \
      node_modules/better-sqlite3/deps node_modules/better-sqlite3/src \
 && find node_modules/better-sqlite3/prebuilds -type f ! -name "linux-$(node -p process.arch).node" -delete

FROM node:24-slim
# No DATABASE_URL here: with DATABASE_URL_FILE it would be given twice. The default is data/gatehouse.db below /app.
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY src ./src
COPY plugins ./plugins
COPY routes ./routes
RUN mkdir -p data node_modules/.cache/node && chown node:node data node_modules/.cache node_modules/.cache/node
USER node

# The service starts once while the image is built, and one account is made: a package that is missing shows here, and what
# Node compiled for it stays in the image (src/preload.js). So the file system can be read-only. Node keeps such code by its
# version, the processor's features and the user's id: where one of them differs, it compiles anew, and nothing else happens.
RUN set -e; \
    export DATABASE_URL=sqlite:/tmp/start/gatehouse.db LOG_LEVEL=warn DRAIN_DELAY=0s; \
    node --import ./src/preload.js src/server.ts & server=$!; \
    node -e "const url = 'http://127.0.0.1:3000'; \
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
HEALTHCHECK --interval=30s --timeout=3s --start-period=60s --start-interval=1s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# What `npm start` runs. Without a shell: Node is process 1, and SIGTERM reaches it.
CMD ["node", "--import", "./src/preload.js", "src/server.ts"]
