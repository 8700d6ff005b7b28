-- Readings of a few sensors; the hot ones are printed.
CREATE STREAM readings (ts TIMESTAMP, sensor BIGINT, celsius DOUBLE) USING generate
    OPTIONS (rows 1000, rate 100, sensor.domain '1..5', celsius.domain '10..40')
    TIMESTAMP BY ts;
CREATE SINK hot USING print OPTIONS (limit 10);

INSERT INTO hot
SELECT ts, sensor, round(celsius, 1) AS celsius FROM readings WHERE celsius > 39;
