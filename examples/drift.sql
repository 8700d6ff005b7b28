-- A stream whose keys become skewed after 20 seconds and whose rate doubles bit by bit until 40 seconds.
CREATE STREAM clicks (ts TIMESTAMP, account BIGINT) USING generate
    OPTIONS (duration '1 minute', rate 500, account.domain '0..9999',
             drift '20 s: account.distribution = zipf(1.3), rate = 500; 40 s: rate ~ 1000')
    TIMESTAMP BY ts;
CREATE STREAM logins (ts TIMESTAMP, account BIGINT) USING generate
    OPTIONS (duration '1 minute', rate 100, account.domain '0..9999')
    TIMESTAMP BY ts;

SELECT window_end() AS until, COUNT(*) AS clicks, COUNT(DISTINCT c.account) AS accounts
FROM clicks [RANGE 10 SECONDS SLIDE 10 SECONDS] AS c, logins [RANGE 10 SECONDS SLIDE 10 SECONDS] AS l
WHERE c.account = l.account;
