"""Numbers of the plane, and of longitude and latitude in degrees.

     WEST          0         EAST           EAST and WEST are the same meridian, the antimeridian. A reading there
POLE  |------------+------------|           has WEST, so longitudes of readings are in [WEST, EAST).
      |            |            |
-POLE |------------+------------|
"""

PLANE = 2  # dimensions

EAST, WEST = 180.0, -180.0
POLE = 90.0
LARGEST_DEGREES = (EAST, POLE)  # of longitude, of latitude
TURN = 360.0  # once around the globe
HALF_TURN = 180.0  # the longest difference of two longitudes; both ways are then equally short
