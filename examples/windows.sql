-- How often each page is seen, over the last 30 seconds, every 10 seconds.
CREATE STREAM visits (ts TIMESTAMP, page VARCHAR, seconds DOUBLE) USING generate
    OPTIONS (duration '1 minute', rate 200, disorder '3 s', page.domain 'home|search|item|basket',
             page.distribution 'zipf(1.0)', seconds.domain '1..90')
    TIMESTAMP BY ts LATENESS 3 SECONDS;

SELECT window_end() AS until, page, COUNT(*) AS visits, round(AVG(seconds), 1) AS mean_seconds
FROM visits [RANGE 30 SECONDS SLIDE 10 SECONDS]
GROUP BY page
HAVING COUNT(*) >= 100;
