-- Clicks, enriched from a table of users in PostgreSQL and from a service of prices. Neither is read whole: the keys of
-- clicks are asked, each once within its time to live. examples/lookups.py starts both and runs this script.

CREATE STREAM clicks (ts TIMESTAMP, user_id BIGINT, sku VARCHAR) USING json OPTIONS (path 'clicks') TIMESTAMP BY ts;

CREATE TABLE users (id BIGINT, name VARCHAR) USING postgres
    OPTIONS (url_env 'PG_URL', table 'users', ttl '0.5 seconds') INDEX ON (id);

CREATE TABLE prices (sku VARCHAR, price DOUBLE) USING http
    OPTIONS (url 'http://localhost:8080/price?sku={sku}', ttl '0.5 seconds') INDEX ON (sku) DEAD INTO failed;

CREATE SINK failed USING json OPTIONS (path 'failed', mode 'overwrite');

SELECT c.ts, u.name, c.sku, p.price
FROM clicks [RANGE 1 MINUTE] AS c, users AS u, prices AS p
WHERE c.user_id = u.id AND c.sku = p.sku;
