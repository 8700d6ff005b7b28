-- Orders, their payments and their shipments: what was paid and shipped within half a minute of each other.
CREATE STREAM orders (ts TIMESTAMP, id BIGINT, customer BIGINT) USING generate
    OPTIONS (duration '2 minutes', rate 50, id.distribution 'sequence', id.domain '0..99999', customer.domain '1..20')
    TIMESTAMP BY ts;
CREATE STREAM payments (ts TIMESTAMP, order_id BIGINT, amount DECIMAL(9, 2)) USING generate
    OPTIONS (duration '2 minutes', rate 40, disorder '2 s', order_id.domain '0..5999', amount.domain '1..500')
    TIMESTAMP BY ts LATENESS 2 SECONDS;
CREATE STREAM shipments (ts TIMESTAMP, order_id BIGINT, carrier VARCHAR) USING generate
    OPTIONS (duration '2 minutes', rate 40, order_id.domain '0..5999', carrier.domain 'post|rail|bike')
    TIMESTAMP BY ts;
CREATE SINK out USING print OPTIONS (limit 10);

INSERT INTO out
SELECT o.id, o.customer, p.amount, s.carrier
FROM orders [RANGE 30 SECONDS] AS o, payments [RANGE 30 SECONDS] AS p, shipments [RANGE 30 SECONDS] AS s
WHERE o.id = p.order_id AND o.id = s.order_id AND p.amount > 100;
