"""Numbers of the plane, and of longitude and latitude in degrees.

         WEST          0         EAST
    POLE  |------------+------------|
          |            |            |
    -POLE |------------+------------|

EAST and WEST are the same meridian, the antimeridian. A reading there has WEST, so the longitudes of readings are in
[WEST, EAST).
"""

PLANE = 2  # dimensions

EAST, WEST = 180.0, -180.0
POLE = 90.0
LARGEST_DEGREES = (EAST, POLE)  # of longitude, of latitude
TURN = 360.0  # once around the globe
HALF_TURN = 180.0  # the longest difference of two longitudes; both ways are then equally short
