"""Scripts that are right: what the mutations start from, and what must stay accepted."""

DECLARED = """
CREATE STREAM orders (id BIGINT, ts TIMESTAMP, customer VARCHAR, amount DECIMAL(10, 2), tags VARCHAR[])
    USING parquet OPTIONS (path 'data/orders', rows.per.file 100, header true, low = -5)
    TIMESTAMP BY ts LATENESS 1 MINUTE 30 SECONDS LATE INTO late DEAD INTO "dead";
CREATE STREAM payments (id BIGINT, order_id BIGINT, ts TIMESTAMP, amount DOUBLE, paid BOOLEAN, day DATE)
    USING json OPTIONS (path 'it''s') TIMESTAMP BY ts LATENESS INTERVAL '5' SECOND;
CREATE TABLE carriers (id INTEGER, name VARCHAR, "odd name" FLOAT) USING csv;
CREATE TABLE people (id BIGINT, name VARCHAR, "odd name" FLOAT)
    USING sqlite OPTIONS (path 'p.db', ttl '5 minutes') SCAN INDEX ON (id) INDEX ON (name, "odd name")
    INDEX ON (id) OPTIONS (path 'q.db', timeout 5) DEAD INTO lost;
CREATE SINK lost USING json;
CREATE SINK late USING json; CREATE SINK "dead" USING json;
CREATE SINK out USING json OPTIONS (path 'out');
"""

QUERIES = [
    "SELECT p.name FROM orders AS o, people AS p, people AS q WHERE o.id = p.id AND p.name = q.name",
    "SELECT * FROM orders",
    "SELECT o.*, p.amount FROM orders [RANGE 30 MINUTES] AS o, payments [ROWS 1000] p WHERE o.id = p.order_id",
    "SELECT o.id FROM orders o [UNBOUNDED] JOIN payments AS p [RANGE INTERVAL '30' MINUTE] ON "
    "o.id = p.order_id AND p.paid",
    "SELECT o.id, c.\"odd name\" FROM orders o CROSS JOIN carriers c WHERE o.id = c.id OR c.name LIKE 'a%'",
    "SELECT a.id FROM orders a, orders b, orders c WHERE a.id = b.id AND (b.id = c.id AND c.ts <= a.ts)",
    """SELECT customer AS who, COUNT(*) AS n, SUM(amount) / COUNT(*) AS mean, window_end()
       FROM orders [RANGE 10 MINUTES SLIDE 1 MINUTE] -- a comment
       WHERE amount > 0 GROUP BY who HAVING COUNT(*) > 1 AND MAX(id) < 100""",
    "SELECT COUNT(DISTINCT customer), MIN(DISTINCT id), AVG(amount) FROM orders",
    "SELECT customer, id % 2, COUNT(id) FROM orders [UNBOUNDED SLIDE 1 HOUR] GROUP BY 1, id % 2",
    "SELECT SUM(p.amount) FROM orders [ROWS 10 SLIDE 1 DAY] o, payments p, carriers c WHERE o.id = c.id",
    """SELECT CASE WHEN amount > 100.5 THEN 'big' WHEN amount IS NULL THEN NULL ELSE 'small' END, -id, + id, 1e5, .5,
       CASE id WHEN 1 THEN 2 END AS c, CAST(amount AS DOUBLE), id::VARCHAR, TRY_CAST(customer AS BIGINT), amount + id
       FROM orders WHERE NOT (id BETWEEN 1 AND 5) AND id NOT IN (7, 8) AND customer NOT LIKE 'x' AND tags IS NULL""",
    """SELECT o.id FROM orders o, payments p
       WHERE o.ts - p.ts BETWEEN INTERVAL '-5' SECOND AND INTERVAL '5 s' AND o.ts > TIMESTAMP '2024-01-01 00:00:00'
       AND p.day >= DATE '2024-02-29' AND o.ts + INTERVAL 5 MINUTES > p.ts AND o.id IS DISTINCT FROM p.id""",
    "INSERT INTO out SELECT coalesce(amount, 0) AS x, x + 1 AS y, /* two */ nullif(id, 3) FROM orders WHERE x > 5;",
    "SELECT `o`.`id` AS `the id`, c.`odd name` FROM `orders` AS `o`, carriers AS c WHERE `the id` = c.id",
]
