-- What was shipped, every minute over the last ten: three topics of Kafka, joined, counted, and kept in a Delta table.
CREATE STREAM orders (ts TIMESTAMP, order_id BIGINT, amount DECIMAL(10, 2)) USING kafka
    OPTIONS (servers 'localhost:9092', topic 'orders', format 'json')
    TIMESTAMP BY ts LATENESS 10 SECONDS;
CREATE STREAM payments (ts TIMESTAMP, order_id BIGINT, method VARCHAR) USING kafka
    OPTIONS (servers 'localhost:9092', topic 'payments', format 'json')
    TIMESTAMP BY ts LATENESS 10 SECONDS;
CREATE STREAM shipments (ts TIMESTAMP, order_id BIGINT, carrier VARCHAR) USING kafka
    OPTIONS (servers 'localhost:9092', topic 'shipments', format 'json')
    TIMESTAMP BY ts LATENESS 10 SECONDS;

CREATE SINK shipped USING delta OPTIONS (path 'lake/shipped') PARTITION BY (carrier);

INSERT INTO shipped
SELECT window_end() AS until, s.carrier, p.method, COUNT(*) AS orders, SUM(o.amount) AS amount
FROM orders [RANGE 10 MINUTES SLIDE 1 MINUTE] AS o,
     payments [RANGE 10 MINUTES SLIDE 1 MINUTE] AS p,
     shipments [RANGE 10 MINUTES SLIDE 1 MINUTE] AS s
WHERE o.order_id = p.order_id AND p.order_id = s.order_id
GROUP BY s.carrier, p.method;
