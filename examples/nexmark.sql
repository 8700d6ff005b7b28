-- Query 3 of Nexmark with a window: new auctions of category 10 whose sellers came from three states shortly before.
CREATE STREAM auction USING nexmark OPTIONS (kind 'auction', duration '1 minute', rate 1000) TIMESTAMP BY dateTime;
CREATE STREAM person USING nexmark OPTIONS (kind 'person', duration '1 minute', rate 1000) TIMESTAMP BY dateTime;

SELECT p.name, p.city, p.state, a.id
FROM auction [RANGE 200 MILLISECONDS] AS a, person [RANGE 200 MILLISECONDS] AS p
WHERE a.seller = p.id AND a.category = 10 AND p.state IN ('OR', 'ID', 'CA');
